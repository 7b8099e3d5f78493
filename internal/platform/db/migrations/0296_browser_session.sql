-- The browser session in which the telephone of a browser last got its token; the end of the session ends its registration.
ALTER TABLE devices ADD COLUMN session_id TEXT;
CREATE INDEX devices_session ON devices (org_id, session_id) WHERE session_id IS NOT NULL;
