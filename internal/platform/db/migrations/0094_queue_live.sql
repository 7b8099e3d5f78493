-- Callers whom nobody could be put through to are offered again from this time on.
ALTER TABLE queue_entries ADD COLUMN retry_at BIGINT;
-- Of a caller who is called back an offer names the call that is placed.
CREATE INDEX queue_offers_call ON queue_offers (org_id, call_id) WHERE status IN ('offering', 'connected');
-- Callbacks that a queue dials when an agent is free have no user of their own: user_id is ''.
ALTER TABLE callbacks ADD COLUMN queue_id TEXT;
CREATE INDEX callbacks_origin ON callbacks (org_id, origin_call_id) WHERE origin = 'queue';
