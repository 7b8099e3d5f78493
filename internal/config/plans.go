package config

import (
	"fmt"
	"os"

	"soniq/internal/identity/org"
)

// ReadPlans returns the plans of the file that --plans names, or the default plans.
func (c *Config) ReadPlans() (org.Plans, error) {
	if c.Plans == "" {
		return org.DefaultPlans(), nil
	}
	f, err := os.Open(c.Plans)
	if err != nil {
		return org.Plans{}, fmt.Errorf("--plans: %w", err)
	}
	defer f.Close()
	p, err := org.ReadPlans(f)
	if err != nil {
		return p, fmt.Errorf("--plans %s: %w", c.Plans, err)
	}
	return p, nil
}
