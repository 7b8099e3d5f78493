package media

import (
	"syscall"
	"testing"
)

// Another process may hold half of the range in one block.
func TestPorts_TakenBlockSkipped(t *testing.T) {
	p, err := newPortSet(20000, 29999)
	if err != nil {
		t.Fatal(err)
	}
	tries := 0
	for range 1000 {
		port, err := p.bind(func(port uint16) error {
			if tries++; port < 25000 {
				return syscall.EADDRINUSE
			}
			return nil
		})
		if err != nil || port < 25000 {
			t.Fatal(port, err)
		}
		p.release(port)
	}
	if tries > 5000 { // about two per port
		t.Errorf("%d ports were tried for 1000", tries)
	}
}

func TestPorts_LastFreePairFound(t *testing.T) {
	p, err := newPortSet(20000, 29999)
	if err != nil {
		t.Fatal(err)
	}
	only := func(port uint16) error {
		if port != 23456 {
			return syscall.EADDRINUSE
		}
		return nil
	}
	if port, err := p.bind(only); err != nil || port != 23456 {
		t.Error(port, err)
	}
	if port, err := p.bind(only); err == nil {
		t.Errorf("port %d was given twice", port)
	}
}
