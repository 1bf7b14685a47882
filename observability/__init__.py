"""Instruments: logs, metrics, traces, faults for tests. Imports no domain app.

Interfaces and loops call these; the kernel and the ledger never do. So an instrument that fails, blocks or
is switched off can change no transition. Modules:

- `logs`     the fields a log line may have, redaction, the logging configuration, the access log
- `metrics`  every metric declared once, with its allowed label values
- `snapshot` what the coordinator measured in its last pass, kept as one row and exported by `/metrics`
- `pool`     the connection pool of the process that is asked
- `registry` both of the last, as `/metrics` exports them
- `tracing`  OpenTelemetry, on only when its standard environment variables ask for it
- `faults`   a plan of failures that tests hand in through constructors
"""
