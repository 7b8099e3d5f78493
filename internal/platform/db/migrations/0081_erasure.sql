-- Numbers about which everything is erased. phone is sealed, and gone once it is done.
CREATE TABLE erasures (
	org_id       TEXT NOT NULL REFERENCES orgs (id),
	id           TEXT NOT NULL,
	phone        BLOB,
	phone_hint   TEXT NOT NULL,
	reason       TEXT,
	status       TEXT NOT NULL,
	items        INTEGER NOT NULL,
	requested_by TEXT NOT NULL,
	created_at   BIGINT NOT NULL,
	finished_at  BIGINT,
	PRIMARY KEY (org_id, id)
);
