-- Notes of contacts are found by searches as notes of calls are, and what is remembered is found by whose it is. contact_id: of a note on
-- a contact; NULL for what belongs to a number or a call.
ALTER TABLE memory_facts ADD COLUMN contact_id TEXT;
CREATE INDEX memory_facts_contact ON memory_facts (org_id, contact_id) WHERE contact_id IS NOT NULL;
CREATE INDEX memory_calls_contact ON memory_calls (org_id, contact_id, at) WHERE contact_id IS NOT NULL;

INSERT INTO memory_facts (org_id, phone, id, text, created_by, created_at, expires_at, kind, contact_id)
	SELECT org_id, '', 'mem_' || substr(id, 6), body, author_id, created_at, created_at + 15811200000000, 'note', contact_id FROM contact_notes;
