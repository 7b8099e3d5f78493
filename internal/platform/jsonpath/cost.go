package jsonpath

import (
	"fmt"
	"strings"
)

// Customers write the paths, and the library does not limit the selection. This file refuses the forms whose cost is
// more than linear in the size of the document.

const maxFilters = 3

// costs scans a path that the library has accepted.
type costs struct {
	path              string
	at                int
	open              []byte // opened brackets
	inFilter          int    // brackets open at the start of the filter; 0 outside of filters
	filters, descents int
}

// checkCost refuses a path that can be expensive.
func checkCost(path string) error {
	c := costs{path: path}
	for ; c.at < len(path); c.at++ {
		if wrong := c.check(path[c.at]); wrong != "" {
			return fmt.Errorf("%s at position %d", wrong, c.at+1)
		}
	}
	return nil
}

// check reads the next character. It returns the error text if the path has too costly a part there; "" if not.
func (c *costs) check(letter byte) string {
	switch letter {
	case '"', '\'':
		c.skipString(letter)
	case '[':
		c.open = append(c.open, letter)
	case '(':
		before := c.path[:c.at]
		if strings.HasSuffix(before, "match") || strings.HasSuffix(before, "search") { // an expression would be compiled for every value
			return "unsupported function"
		}
		c.open = append(c.open, letter)
	case ']', ')':
		c.open = c.open[:max(len(c.open)-1, 0)]
		c.inFilter = min(c.inFilter, len(c.open))
	case ',':
		if len(c.open) > 0 && c.open[len(c.open)-1] == '[' {
			return "unsupported second selector in brackets"
		}
	case '?':
		c.inFilter = len(c.open)
		if c.filters++; c.filters > maxFilters {
			return fmt.Sprintf("more than %d filters", maxFilters)
		}
	case '$':
		if c.at > 0 {
			return "unsupported $ in a filter"
		}
	case '.':
		return c.checkDescent()
	}
	return ""
}

func (c *costs) skipString(quote byte) {
	for c.at++; c.at < len(c.path) && c.path[c.at] != quote; c.at++ {
		if c.path[c.at] == '\\' {
			c.at++
		}
	}
}

func (c *costs) checkDescent() string {
	if !strings.HasPrefix(c.path[c.at:], "..") {
		return ""
	}
	if c.descents++; c.descents > 1 || c.inFilter > 0 {
		return "unsupported second .., or .. in a filter"
	}
	c.at++
	return ""
}
