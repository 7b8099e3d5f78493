-- Agents and users. A removed one stays for history; e-mail address and extension become free.
CREATE TABLE users (
	org_id             TEXT NOT NULL REFERENCES orgs (id),
	id                 TEXT NOT NULL,
	email              TEXT NOT NULL,
	first_name         TEXT NOT NULL,
	last_name          TEXT NOT NULL,
	role               TEXT NOT NULL,
	status             TEXT NOT NULL,
	extension          TEXT,
	outbound_number_id TEXT,
	dnd                BOOLEAN NOT NULL,
	dnd_until          BIGINT,
	timezone           TEXT,
	language           TEXT,
	skills             TEXT NOT NULL,
	ring_strategy      TEXT NOT NULL,
	forward            TEXT NOT NULL,
	voicemail          TEXT NOT NULL,
	recording_mode     TEXT NOT NULL,
	created_at         BIGINT NOT NULL,
	updated_at         BIGINT NOT NULL,
	last_seen_at       BIGINT,
	PRIMARY KEY (org_id, id)
);
CREATE UNIQUE INDEX users_email ON users (org_id, lower(email)) WHERE status <> 'removed';
CREATE UNIQUE INDEX users_extension ON users (org_id, extension) WHERE extension IS NOT NULL;

-- API keys. Only a keyed digest is kept. A test key belongs to the sandbox twin.
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
	PRIMARY KEY (org_id, id),
	FOREIGN KEY (org_id, user_id) REFERENCES users (org_id, id)
);
