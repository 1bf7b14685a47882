-- The wall clock of the database, read behind the locks that the same batch took.
SELECT clock_timestamp()
