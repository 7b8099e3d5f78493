-- Who set the disposition of a call, with which label, and when. disposition itself is from 0020.
ALTER TABLE calls ADD COLUMN disposition_label TEXT;
ALTER TABLE calls ADD COLUMN disposition_by TEXT;
ALTER TABLE calls ADD COLUMN disposition_at BIGINT;
-- The call whose disposition ends the wrap-up of an agent. NULL: the wrap-up ends with time.
ALTER TABLE agents ADD COLUMN wrap_up_call_id TEXT;
