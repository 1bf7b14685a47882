"""What every HTTP interface stands on: errors, parsing, pages, idempotency, the schema. Imports no domain app."""
