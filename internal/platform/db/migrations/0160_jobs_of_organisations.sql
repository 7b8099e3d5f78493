-- Organisations take turns at their jobs: jobs_ready is skipped through from one organisation to the next, and in each from lane to lane.
-- jobs_due also has the organisation, so that a claim reads no rows to know whose jobs are due.
DROP INDEX jobs_ready;
DROP INDEX jobs_due;
CREATE INDEX jobs_ready ON jobs (queue, org_id, lane, run_at, id) WHERE state = 0 AND lane <> '';
CREATE INDEX jobs_due ON jobs (queue, run_at, id, lane, order_key, state, org_id) WHERE state = 0;
