-- The highest role that a key may give to others: that of whoever made the key. Keys from before may give that of an
-- administrator, and those of the operator every role.
ALTER TABLE api_keys ADD COLUMN role TEXT NOT NULL DEFAULT 'admin';
UPDATE api_keys SET role = 'owner' WHERE created_by = 'console';
