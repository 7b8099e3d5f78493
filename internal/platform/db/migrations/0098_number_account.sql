-- Accounts of organisations at providers that sell numbers. settings is sealed: address, key and the provider's connection together.
-- Numbers bought with one come over trunk_id.
CREATE TABLE number_accounts (
	org_id     TEXT NOT NULL REFERENCES orgs (id),
	id         TEXT NOT NULL,
	provider   TEXT NOT NULL,
	trunk_id   TEXT NOT NULL,
	settings   BLOB NOT NULL,
	enabled    BOOLEAN NOT NULL,
	created_at BIGINT NOT NULL,
	updated_at BIGINT NOT NULL,
	PRIMARY KEY (org_id, id),
	FOREIGN KEY (org_id, trunk_id) REFERENCES trunks (org_id, id)
);
CREATE UNIQUE INDEX number_accounts_provider ON number_accounts (org_id, provider);

-- With which account a number was bought, and what the provider says of its order.
ALTER TABLE numbers ADD COLUMN account_id TEXT;
ALTER TABLE numbers ADD COLUMN status_detail TEXT;
