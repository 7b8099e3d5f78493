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

-- API keys. Only a keyed digest is kept.
CREATE TABLE api_keys (
	org_id      TEXT NOT NULL REFERENCES orgs (id),
	id          TEXT NOT NULL,
	digest      TEXT NOT NULL UNIQUE,
	name        TEXT NOT NULL,
	kind        TEXT NOT NULL,
	environment TEXT NOT NULL,
	prefix      TEXT NOT NULL,
	hint        TEXT NOT NULL,
	scopes      TEXT NOT NULL,
	user_id     TEXT,
	allowed_ips TEXT NOT NULL,
	expires_at  BIGINT,
	last_used_at BIGINT,
	last_used_ip TEXT,
	created_by  TEXT NOT NULL,
	created_at  BIGINT NOT NULL,
	revoked_at  BIGINT,
	rotates_to  TEXT,
	PRIMARY KEY (org_id, id)
);
