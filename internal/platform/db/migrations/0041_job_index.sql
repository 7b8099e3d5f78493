-- Indexes that only the statements they are made for can use. A partial index looks empty to PostgreSQL while there is
-- little to do, and it then reads the whole of it for any statement it is good for, however long it has become since.
DROP INDEX jobs_ready;
DROP INDEX jobs_due;
DROP INDEX jobs_order;
DROP INDEX jobs_unique;
CREATE INDEX jobs_ready ON jobs (queue, lane, run_at, id) WHERE state = 0 AND lane <> '';
CREATE INDEX jobs_due ON jobs (queue, run_at, id) WHERE state = 0;
CREATE INDEX jobs_order ON jobs (order_key, id) WHERE state < 2 AND order_key IS NOT NULL;
CREATE UNIQUE INDEX jobs_unique ON jobs (unique_key) WHERE state < 2 AND unique_key IS NOT NULL;
