"""What every HTTP interface stands on: errors, parsing, pages, idempotency, schema. Imports no domain app."""
