-- What an audit line says beside who and where: with what sort of credential, what record, and what came of it.
ALTER TABLE audit ADD COLUMN key_name TEXT NOT NULL DEFAULT '';
ALTER TABLE audit ADD COLUMN credential TEXT NOT NULL DEFAULT 'standard';
ALTER TABLE audit ADD COLUMN record_id TEXT;
ALTER TABLE audit ADD COLUMN status INTEGER NOT NULL DEFAULT 200;
ALTER TABLE audit ADD COLUMN code TEXT;
CREATE INDEX audit_at ON audit (org_id, at, id);
CREATE INDEX audit_old ON audit (at);
