-- Prompts and music of organisations; the sound itself lies in the blob store.
CREATE TABLE audio (
	org_id      TEXT NOT NULL REFERENCES orgs (id),
	id          TEXT NOT NULL,
	name        TEXT NOT NULL,
	kind        TEXT NOT NULL,
	source      TEXT NOT NULL,
	text        TEXT,
	voice       TEXT,
	language    TEXT,
	duration_ms BIGINT NOT NULL,
	format      TEXT NOT NULL,
	size_bytes  BIGINT NOT NULL,
	blob        TEXT NOT NULL,
	created_at  BIGINT NOT NULL,
	PRIMARY KEY (org_id, id)
);
