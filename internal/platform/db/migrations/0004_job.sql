-- Durable work. state: 0 ready, 1 running, 2 done, 3 dead.
CREATE TABLE jobs (
	id           TEXT PRIMARY KEY,
	org_id       TEXT NOT NULL,
	queue        TEXT NOT NULL,
	lane         TEXT NOT NULL,
	kind         TEXT NOT NULL,
	state        INTEGER NOT NULL,
	run_at       BIGINT NOT NULL,
	attempt      INTEGER NOT NULL,
	max_attempts INTEGER NOT NULL,
	unique_key   TEXT,
	order_key    TEXT,
	args         TEXT NOT NULL,
	lease_until  BIGINT,
	worker       TEXT,
	last_error   TEXT,
	created_at   BIGINT NOT NULL,
	finished_at  BIGINT
);
CREATE INDEX jobs_ready ON jobs (queue, lane, run_at, id) WHERE state = 0;
CREATE INDEX jobs_due ON jobs (queue, run_at, id) WHERE state = 0;
CREATE INDEX jobs_running ON jobs (lease_until) WHERE state = 1;
CREATE INDEX jobs_order ON jobs (order_key, id) WHERE state < 2;
CREATE UNIQUE INDEX jobs_unique ON jobs (unique_key) WHERE state < 2;
CREATE INDEX jobs_finished ON jobs (finished_at) WHERE state >= 2;
