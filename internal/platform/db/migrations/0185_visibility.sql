-- Users see the calls in which they had a part.
CREATE INDEX legs_user ON legs (org_id, user_id, call_id) WHERE user_id IS NOT NULL;
CREATE INDEX calls_user ON calls (org_id, user_id, id) WHERE user_id IS NOT NULL;
DROP INDEX queue_members_user;
CREATE INDEX queue_members_user ON queue_members (org_id, user_id, queue_id);

-- Who asked for an export, and who made a webhook: they get what that user sees. NULL: a credential of the organisation.
ALTER TABLE cdr_exports ADD COLUMN user_id TEXT;
ALTER TABLE webhooks ADD COLUMN user_id TEXT;
