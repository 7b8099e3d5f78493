-- Phones. User names are unique over all organisations: the domain never selects the tenant.
CREATE TABLE devices (
	org_id       TEXT NOT NULL REFERENCES orgs (id),
	id           TEXT NOT NULL,
	user_id      TEXT NOT NULL,
	name         TEXT NOT NULL,
	kind         TEXT NOT NULL,
	mac          TEXT,
	vendor       TEXT,
	model        TEXT,
	template_id  TEXT,
	username     TEXT NOT NULL UNIQUE,
	ha1_md5      BLOB NOT NULL,
	ha1_sha256   BLOB NOT NULL,
	digest       TEXT NOT NULL,
	transport    TEXT NOT NULL,
	srtp         TEXT NOT NULL,
	codecs       TEXT NOT NULL,
	line_keys    TEXT NOT NULL,
	status       TEXT NOT NULL,
	created_at   BIGINT NOT NULL,
	updated_at   BIGINT NOT NULL,
	rotated_at   BIGINT NOT NULL,
	last_seen_at BIGINT,
	PRIMARY KEY (org_id, id),
	FOREIGN KEY (org_id, user_id) REFERENCES users (org_id, id)
);
CREATE UNIQUE INDEX devices_id ON devices (id);
CREATE INDEX devices_user ON devices (org_id, user_id);

-- Where a phone can be reached: everything a call to it needs.
CREATE TABLE registrations (
	org_id        TEXT NOT NULL REFERENCES orgs (id),
	device_id     TEXT NOT NULL,
	id            TEXT NOT NULL,
	contact       TEXT NOT NULL,
	path          TEXT NOT NULL,
	source        TEXT NOT NULL,
	transport     TEXT NOT NULL,
	flow          BIGINT NOT NULL,
	instance      TEXT NOT NULL,
	call_id       TEXT NOT NULL,
	cseq          BIGINT NOT NULL,
	priority      INTEGER NOT NULL,
	user_agent    TEXT NOT NULL,
	registered_at BIGINT NOT NULL,
	expires_at    BIGINT NOT NULL,
	PRIMARY KEY (org_id, device_id, id),
	FOREIGN KEY (org_id, device_id) REFERENCES devices (org_id, id)
);
CREATE INDEX registrations_expiry ON registrations (expires_at);
