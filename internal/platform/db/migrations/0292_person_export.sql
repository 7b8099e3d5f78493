-- Exports of what is kept about one number. phone is sealed, and gone once the export has ended.
CREATE TABLE person_exports (
	org_id       TEXT NOT NULL REFERENCES orgs (id),
	id           TEXT NOT NULL,
	phone        BLOB,
	phone_hint   TEXT NOT NULL,
	reason       TEXT,
	status       TEXT NOT NULL,
	items        BIGINT NOT NULL,
	parts_total  INTEGER NOT NULL,
	parts_done   INTEGER NOT NULL,
	size_bytes   BIGINT NOT NULL,
	revision     INTEGER NOT NULL,
	error        TEXT,
	requested_by TEXT NOT NULL,
	created_at   BIGINT NOT NULL,
	started_at   BIGINT,
	finished_at  BIGINT,
	expires_at   BIGINT,
	PRIMARY KEY (org_id, id)
);
