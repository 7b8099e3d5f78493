-- What people sign in with. hash: Argon2id as a PHC string; totp, totp_new: sealed seeds, in use and offered; totp_step: the last
-- one that was used.
CREATE TABLE account_logins (
	org_id     TEXT NOT NULL REFERENCES orgs (id),
	user_id    TEXT NOT NULL,
	hash       TEXT NOT NULL,
	changed_at BIGINT NOT NULL,
	totp       BLOB,
	totp_new   BLOB,
	totp_step  BIGINT NOT NULL DEFAULT 0,
	PRIMARY KEY (org_id, user_id),
	FOREIGN KEY (org_id, user_id) REFERENCES users (org_id, id)
);

CREATE TABLE account_recovery (
	org_id  TEXT NOT NULL REFERENCES orgs (id),
	user_id TEXT NOT NULL,
	digest  TEXT NOT NULL,
	PRIMARY KEY (org_id, user_id, digest),
	FOREIGN KEY (org_id, user_id) REFERENCES users (org_id, id)
);

-- Browsers that are signed in, or half-way (whose person still has to show a code).
CREATE TABLE account_sessions (
	org_id     TEXT NOT NULL REFERENCES orgs (id),
	id         TEXT NOT NULL,
	user_id    TEXT NOT NULL,
	digest     TEXT NOT NULL UNIQUE,
	half       BOOLEAN NOT NULL,
	created_at BIGINT NOT NULL,
	used_at    BIGINT NOT NULL,
	expires_at BIGINT NOT NULL,
	source     TEXT NOT NULL,
	agent      TEXT NOT NULL,
	PRIMARY KEY (org_id, id),
	FOREIGN KEY (org_id, user_id) REFERENCES users (org_id, id)
);
CREATE INDEX account_sessions_user ON account_sessions (org_id, user_id);
CREATE INDEX account_sessions_expiry ON account_sessions (expires_at);

-- Links with which a password is set once.
CREATE TABLE account_links (
	org_id     TEXT NOT NULL REFERENCES orgs (id),
	digest     TEXT NOT NULL UNIQUE,
	user_id    TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	expires_at BIGINT NOT NULL,
	PRIMARY KEY (org_id, digest),
	FOREIGN KEY (org_id, user_id) REFERENCES users (org_id, id)
);

-- Failed attempts to sign in, by a digest of the e-mail address, whether there is such a user or not.
CREATE TABLE login_failures (
	digest       TEXT PRIMARY KEY,
	failures     INTEGER NOT NULL,
	failed_at    BIGINT NOT NULL,
	locked_until BIGINT
);
