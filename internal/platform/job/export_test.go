package job

import "context"

// Disown is what the loop does after the answer to a claim was lost.
func (r *Runner) Disown(ctx context.Context) error { return r.disown(ctx) }
