package op

import (
	"net/http"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// Error codes of operations: those that follow from the declaration, and those added by Fails.

// Fails adds error codes of the operation.
func (o Operation) Fails(codes ...string) Operation {
	o.fails = append(slices.Clip(o.fails), codes...)
	return o
}

// Codes returns all error codes of the operation, sorted.
func (o Operation) Codes() []string {
	all := append([]string{"invalid_query", "rate_limited", "internal", "overloaded"}, o.fails...)
	if !o.Need.IsPublic() {
		all = append(all, "unauthenticated", "key_expired", "key_revoked", "token_expired", "insufficient_scope", "wrong_environment",
			"ip_not_allowed", "org_suspended", "not_found") // not_found: On-Behalf-Of is not a child organisation
	}
	if o.OnlyEnvironment != "" || strings.Contains(o.Path, "{") {
		all = append(all, "not_found", "validation_failed")
	}
	if o.Signed {
		all = append(all, "unauthenticated")
	}
	if o.list {
		all = append(all, "invalid_cursor")
	}
	if o.Method != http.MethodGet && o.Method != http.MethodDelete {
		all = append(all, "malformed_json", "unknown_field", "payload_too_large", "unsupported_media_type", "validation_failed")
	}
	if o.maxBodyBytes > 0 {
		all = append(all, "concurrency_limit")
	}
	if o.Writes() {
		all = append(all, "malformed_json", "idempotency_key_reused", "idempotency_in_progress", "validation_failed")
	}
	if o.changes() {
		all = append(all, "version_conflict")
	}
	if o.Writes() && strings.Contains(o.Path, "{") {
		all = append(all, "invalid_state")
	}
	if o.Method == http.MethodPost && o.SuccessCode == http.StatusCreated || o.Method == http.MethodPatch {
		all = append(all, "already_exists", "plan_limit")
	}
	if o.Method == http.MethodDelete {
		all = append(all, "in_use")
	}
	if o.HasSideEffects && o.Writes() {
		all = append(all, "invalid_state", "draining", "action_timeout", "carrier_error", "not_enabled")
	}
	if o.Rollout == RolloutPlanned {
		all = append(all, "not_enabled")
	}
	sort.Strings(all)
	return slices.Compact(all)
}

// statuses returns the HTTP statuses of the codes.
func statuses(names []string) []int {
	var all []int
	for _, c := range names {
		if s := codes[c].status; !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	slices.Sort(all)
	return all
}

// describeFailures adds the error codes to each error status of an operation.
func describeFailures(h *huma.Operation, o Operation) {
	byStatus := map[string][]string{}
	for _, c := range o.Codes() {
		status := strconv.Itoa(codes[c].status)
		byStatus[status] = append(byStatus[status], c)
	}
	for status, names := range byStatus {
		r := h.Responses[status]
		if r == nil {
			continue
		}
		described := *r
		described.Extensions = map[string]any{"x-codes": names}
		h.Responses[status] = &described
	}
}
