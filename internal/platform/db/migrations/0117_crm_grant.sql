-- What vendors of connected systems gave to act with: tokens, sealed together. refused says why they take them no more.
CREATE TABLE crm_grants (
	org_id        TEXT NOT NULL,
	connection_id TEXT NOT NULL,
	tokens        BLOB NOT NULL,
	expires_at    BIGINT,
	version       BIGINT NOT NULL,
	leased_until  BIGINT,
	refused       TEXT,
	PRIMARY KEY (org_id, connection_id),
	FOREIGN KEY (org_id, connection_id) REFERENCES crm_connections (org_id, id) ON DELETE CASCADE
);

-- Questions to people whether a connection may be made, until they come back from the vendor. state is a digest, verifier sealed.
CREATE TABLE crm_authorizations (
	org_id        TEXT NOT NULL,
	state         TEXT NOT NULL,
	connection_id TEXT NOT NULL,
	verifier      BLOB NOT NULL,
	asked_by      TEXT NOT NULL,
	expires_at    BIGINT NOT NULL,
	PRIMARY KEY (org_id, state),
	FOREIGN KEY (org_id, connection_id) REFERENCES crm_connections (org_id, id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX crm_authorizations_state ON crm_authorizations (state);
