-- When the last connection of a browser's telephone ended without a sign-off, until it registers again.
ALTER TABLE devices ADD COLUMN lost_at BIGINT;
CREATE INDEX devices_lost ON devices (org_id, user_id) WHERE lost_at IS NOT NULL;
