-- What people wrote down of a number. expires_at: when it is no longer true; NULL: never.
CREATE TABLE memory_facts (
	org_id     TEXT NOT NULL REFERENCES orgs (id),
	phone      TEXT NOT NULL,
	id         TEXT NOT NULL,
	text       TEXT NOT NULL,
	created_by TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	expires_at BIGINT,
	PRIMARY KEY (org_id, phone, id)
);
CREATE UNIQUE INDEX memory_facts_id ON memory_facts (org_id, id);
CREATE INDEX memory_facts_expires ON memory_facts (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX memory_items_id ON memory_items (org_id, id);
