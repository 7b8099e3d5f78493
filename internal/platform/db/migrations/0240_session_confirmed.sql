-- When the person of a browser session entered a password or code last. Sensitive changes ask for it again after a while.
ALTER TABLE account_sessions ADD COLUMN confirmed_at BIGINT NOT NULL DEFAULT 0;
UPDATE account_sessions SET confirmed_at = created_at;
