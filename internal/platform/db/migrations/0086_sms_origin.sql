-- origin: what a telephone knows a message by that was written on it, so that it is written down once.
ALTER TABLE messages ADD COLUMN origin TEXT;
CREATE UNIQUE INDEX messages_origin ON messages (org_id, origin) WHERE origin IS NOT NULL;
