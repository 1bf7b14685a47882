"""The worker process: it asks the control plane for leases over HTTP, runs them, and reports the results.

Roles, one thread each (the pool has up to one thread per slot):

- the claim loop (`loop.ClaimLoop`) waits at the control plane for work while slots are free;
- the pool (`pool.Pool`) executes leases, never more than there are slots;
- the completion sender (`completions.CompletionSender`) sends finished results in batches and, in the
  same call, asks for the slots that they free;
- the heart (`leases.Heart`) renews all leases held, also when there are none;
- the watch (`leases.Watch`) stops work whose lease may no longer be ours;
- the standby (`standby`, a process) renews leases while an action holds the interpreter;
- the reporter (`reports.Reports`) sends log lines and progress of actions.

Who asks for slots: `account.Account` is the one account of slots, leases and claim numbers, under one lock,
and at most **one call that may lease is in flight** at any time, be it a claim or a completion with refill.
Hence no slot is asked for twice. While a claim waits at the control plane it is the asker: the control plane
had no work for us a moment ago and wakes the claim as soon as there is some, so a refill could only take the
same task a little later. While every slot is busy no claim can wait, and completions refill. When a refill
brings less than it asked for, the queue is dry and the claim loop waits again. A call without an answer
leaves its claim number behind for the next call that may lease, whichever of the two it is: the control plane
then answers with the leases of the first one.

Imports nothing of Django: it shares `workflows.kernel` with the control plane, and the instruments of
`observability`.
"""
