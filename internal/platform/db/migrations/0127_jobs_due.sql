-- Jobs that are due are listed often, and most of them are not taken at once: all that the list shows is in its index. SQLite reads the row
-- for state otherwise.
DROP INDEX jobs_due;
CREATE INDEX jobs_due ON jobs (queue, run_at, id, lane, order_key, state) WHERE state = 0;
