-- Organisations. Every organisation has a sandbox twin: an ordinary organisation of its own,
-- found by the id of its live one.
CREATE TABLE orgs (
	id          TEXT PRIMARY KEY,
	parent_id   TEXT REFERENCES orgs (id),
	path        TEXT NOT NULL,
	live_id     TEXT UNIQUE REFERENCES orgs (id),
	environment TEXT NOT NULL,
	name        TEXT NOT NULL,
	plan        TEXT NOT NULL,
	status      TEXT NOT NULL,
	country     TEXT NOT NULL,
	timezone    TEXT NOT NULL,
	language    TEXT NOT NULL,
	settings    TEXT NOT NULL,
	created_at  BIGINT NOT NULL,
	updated_at  BIGINT NOT NULL
);
CREATE INDEX orgs_path ON orgs (path);
