-- The seconds of a call that the user of a leg served. NULL: the user did not serve the call, or the leg has not ended.
ALTER TABLE legs ADD COLUMN talk_seconds INTEGER;
ALTER TABLE legs ADD COLUMN hold_seconds INTEGER;
-- Calls from before count for their last agent.
UPDATE legs SET talk_seconds = (SELECT c.talk_seconds FROM calls c WHERE c.org_id = legs.org_id AND c.id = legs.call_id),
	hold_seconds = (SELECT c.hold_seconds FROM calls c WHERE c.org_id = legs.org_id AND c.id = legs.call_id)
	WHERE user_id IS NOT NULL AND role <> 'caller' AND answered_at IS NOT NULL AND EXISTS (SELECT 1 FROM calls c WHERE c.org_id = legs.org_id
		AND c.id = legs.call_id AND c.agent_id = legs.user_id AND c.ended_at IS NOT NULL)
	AND id = (SELECT MAX(l.id) FROM legs l WHERE l.org_id = legs.org_id AND l.call_id = legs.call_id AND l.user_id = legs.user_id
		AND l.role <> 'caller' AND l.answered_at IS NOT NULL);
