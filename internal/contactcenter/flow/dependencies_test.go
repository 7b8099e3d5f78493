package flow_test

import (
	"context"
	"strings"

	"soniq/internal/platform/db"
)

// The fixture implements the dependencies of the service.

func (h *fixture) CheckDestination(_ context.Context, _, to string) (string, error) {
	if strings.HasSuffix(to, "_none") || to == "" || to == "nonsense" {
		return "there is no " + to, nil
	}
	return "", nil
}

func (h *fixture) HasAudio(_ context.Context, _, id string) (bool, error) {
	return !strings.HasSuffix(id, "_none"), nil
}

func (h *fixture) OwnsNumber(_ context.Context, _, n string) (bool, error) {
	return n == "+442079460018", nil
}

func (h *fixture) IDsOfFlows(context.Context, db.Querier, string, []string) (map[string][]string, error) {
	return h.numbers, nil
}

func (h *fixture) AssignToFlow(_ context.Context, _ db.Querier, _, id string, numbers []string) (missing []string, err error) {
	for _, n := range numbers {
		if n == "num_none" {
			missing = append(missing, n)
			continue
		}
		h.numbers[id] = append(h.numbers[id], n)
	}
	return missing, nil
}

func (h *fixture) ForwardingToFlow(context.Context, db.Querier, string, string) ([]string, error) {
	return nil, nil
}

func (h *fixture) OverflowingToFlow(context.Context, db.Querier, string, string) ([]string, error) {
	return nil, nil
}
