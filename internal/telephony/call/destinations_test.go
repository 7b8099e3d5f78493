package call_test

import "context"

// fakeDestinations parses destinations with a function. Numbers are taken as they are. Script targets exist if targets is true.
type fakeDestinations struct {
	parse   func(to string) (string, error)
	targets bool
}

func (f fakeDestinations) ParseDestination(_ context.Context, _, to string) (string, error) {
	return f.parse(to)
}

func (fakeDestinations) ParseNumber(_ context.Context, _, text string) (string, bool, error) {
	return text, true, nil
}

func (f fakeDestinations) CheckTarget(context.Context, string, string) (string, error) {
	if f.targets {
		return "", nil
	}
	return "there is none", nil
}
