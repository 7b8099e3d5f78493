-- Tokens with which a page connects a telephone, for ten minutes.
CREATE TABLE browser_tokens (
	org_id     TEXT NOT NULL REFERENCES orgs (id),
	id         TEXT NOT NULL,
	device_id  TEXT NOT NULL,
	digest     TEXT NOT NULL UNIQUE,
	created_at BIGINT NOT NULL,
	expires_at BIGINT NOT NULL,
	PRIMARY KEY (org_id, id),
	FOREIGN KEY (org_id, device_id) REFERENCES devices (org_id, id) ON DELETE CASCADE
);
CREATE INDEX browser_tokens_device ON browser_tokens (org_id, device_id);
CREATE INDEX browser_tokens_expiry ON browser_tokens (expires_at);
