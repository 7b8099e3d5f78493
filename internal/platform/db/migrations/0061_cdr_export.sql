-- Files of call detail records that were asked for. ask: what they hold. revision rises when records they may hold were erased.
CREATE TABLE cdr_exports (
	org_id      TEXT NOT NULL REFERENCES orgs (id),
	id          TEXT NOT NULL,
	status      TEXT NOT NULL,
	ask         TEXT NOT NULL,
	total       BIGINT NOT NULL,
	done        BIGINT NOT NULL,
	size_bytes  BIGINT NOT NULL,
	revision    BIGINT NOT NULL,
	error       TEXT,
	created_at  BIGINT NOT NULL,
	started_at  BIGINT,
	finished_at BIGINT,
	expires_at  BIGINT,
	PRIMARY KEY (org_id, id)
);
CREATE INDEX cdr_exports_status ON cdr_exports (org_id, status);
