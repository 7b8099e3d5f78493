-- Programs that people let act for them (OAuth 2.1). A grant is what one person gave to one client; its tokens are a family, and end
-- with it. Of codes and tokens only keyed digests are kept.
CREATE TABLE oauth_grants (
	org_id        TEXT NOT NULL REFERENCES orgs (id),
	id            TEXT NOT NULL,
	user_id       TEXT NOT NULL,
	client_id     TEXT NOT NULL,
	client_name   TEXT NOT NULL,
	audience      TEXT NOT NULL,
	scopes        TEXT NOT NULL,
	created_at    BIGINT NOT NULL,
	last_used_at  BIGINT,
	last_used_ip  TEXT,
	revoked_at    BIGINT,
	step_up_until BIGINT,
	PRIMARY KEY (org_id, id),
	FOREIGN KEY (org_id, user_id) REFERENCES users (org_id, id)
);
CREATE INDEX oauth_grants_user ON oauth_grants (org_id, user_id);

CREATE TABLE oauth_tokens (
	org_id     TEXT NOT NULL REFERENCES orgs (id),
	digest     TEXT NOT NULL UNIQUE,
	grant_id   TEXT NOT NULL,
	kind       TEXT NOT NULL,
	audience   TEXT NOT NULL,
	scopes     TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	expires_at BIGINT NOT NULL,
	spent_at   BIGINT,
	next       TEXT,
	PRIMARY KEY (org_id, digest),
	FOREIGN KEY (org_id, grant_id) REFERENCES oauth_grants (org_id, id) ON DELETE CASCADE
);
CREATE INDEX oauth_tokens_grant ON oauth_tokens (org_id, grant_id);
CREATE INDEX oauth_tokens_expiry ON oauth_tokens (expires_at);

CREATE TABLE oauth_codes (
	org_id       TEXT NOT NULL REFERENCES orgs (id),
	digest       TEXT NOT NULL UNIQUE,
	user_id      TEXT NOT NULL,
	client_id    TEXT NOT NULL,
	client_name  TEXT NOT NULL,
	redirect_uri TEXT NOT NULL,
	challenge    TEXT NOT NULL,
	audience     TEXT NOT NULL,
	scopes       TEXT NOT NULL,
	created_at   BIGINT NOT NULL,
	expires_at   BIGINT NOT NULL,
	grant_id     TEXT,
	PRIMARY KEY (org_id, digest),
	FOREIGN KEY (org_id, user_id) REFERENCES users (org_id, id)
);
CREATE INDEX oauth_codes_expiry ON oauth_codes (expires_at);

-- What people agreed to, so that they are not asked the same again.
CREATE TABLE oauth_consents (
	org_id     TEXT NOT NULL REFERENCES orgs (id),
	user_id    TEXT NOT NULL,
	client_id  TEXT NOT NULL,
	audience   TEXT NOT NULL,
	scopes     TEXT NOT NULL,
	updated_at BIGINT NOT NULL,
	PRIMARY KEY (org_id, user_id, client_id, audience),
	FOREIGN KEY (org_id, user_id) REFERENCES users (org_id, id)
);

-- Clients that registered themselves (RFC 7591). They belong to no organisation.
CREATE TABLE oauth_clients (
	id            TEXT PRIMARY KEY,
	name          TEXT NOT NULL,
	uri           TEXT NOT NULL,
	redirect_uris TEXT NOT NULL,
	created_at    BIGINT NOT NULL,
	used_at       BIGINT NOT NULL
);
CREATE INDEX oauth_clients_used ON oauth_clients (used_at);
