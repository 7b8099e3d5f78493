-- Calls to be placed later. call_id: the attempt that runs.
CREATE TABLE callbacks (
	org_id         TEXT NOT NULL REFERENCES orgs (id),
	id             TEXT NOT NULL,
	to_number      TEXT NOT NULL,
	user_id        TEXT NOT NULL,
	from_number    TEXT,
	reason         TEXT,
	scheduled_at   BIGINT NOT NULL,
	window_end     BIGINT NOT NULL,
	window_given   BOOLEAN NOT NULL,
	status         TEXT NOT NULL,
	call_id        TEXT,
	attempts       TEXT NOT NULL,
	max_attempts   INTEGER NOT NULL,
	origin         TEXT NOT NULL,
	origin_call_id TEXT,
	sandbox        BOOLEAN NOT NULL,
	created_at     BIGINT NOT NULL,
	finished_at    BIGINT,
	PRIMARY KEY (org_id, id)
);
CREATE INDEX callbacks_due ON callbacks (org_id, scheduled_at, id);
CREATE UNIQUE INDEX callbacks_dialing ON callbacks (org_id, to_number) WHERE status = 'dialing';
CREATE INDEX callbacks_call ON callbacks (org_id, call_id) WHERE call_id IS NOT NULL;
