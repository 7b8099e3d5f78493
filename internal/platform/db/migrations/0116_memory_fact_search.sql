-- Facts are found by searches: by their words and meaning, as passages of calls are. key: NULL until that was worked out.
ALTER TABLE memory_facts ADD COLUMN key BIGINT;
ALTER TABLE memory_facts ADD COLUMN model TEXT NOT NULL DEFAULT '';
ALTER TABLE memory_facts ADD COLUMN vector BLOB;
ALTER TABLE memory_facts ADD COLUMN terms BLOB;
CREATE INDEX memory_facts_key ON memory_facts (org_id, key);
