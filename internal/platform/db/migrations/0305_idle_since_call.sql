-- ended_call_id is the call whose end is idle_since; NULL if that is not the end of a queue's call.
ALTER TABLE agents ADD COLUMN ended_call_id TEXT;
