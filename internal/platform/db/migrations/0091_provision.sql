-- Addresses from which phones fetch their configuration: one for each phone, of which only a digest of the token is kept. What the
-- file hands out (the SIP password) and what it is fetched with later (the login) are sealed.
CREATE TABLE provisionings (
	org_id        TEXT NOT NULL REFERENCES orgs (id),
	device_id     TEXT NOT NULL,
	digest        TEXT NOT NULL UNIQUE,
	status        TEXT NOT NULL,
	created_at    BIGINT NOT NULL,
	open_until    BIGINT NOT NULL,
	bound_at      BIGINT,
	user_agent    TEXT,
	login         BLOB,
	password      BLOB,
	last_fetch_at BIGINT,
	PRIMARY KEY (org_id, device_id),
	FOREIGN KEY (org_id, device_id) REFERENCES devices (org_id, id) ON DELETE CASCADE
);
CREATE INDEX provisionings_open ON provisionings (open_until);
