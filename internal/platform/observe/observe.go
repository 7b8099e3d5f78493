// Package observe keeps lists of observers: packages announce their changes to interfaces that other packages implement.
package observe

import "fmt"

// Add appends o to the list if it implements T, and reports whether it does.
func Add[T any](list *[]T, o any) bool {
	t, ok := o.(T)
	if ok {
		*list = append(*list, t)
	}
	return ok
}

// Require panics if o was added to no list. A method Observe calls it with the results of Add, so that a type that observes nothing stops
// the program at its start.
func Require(pkg string, o any, added ...bool) {
	for _, ok := range added {
		if ok {
			return
		}
	}
	panic(fmt.Sprintf("%s: %T implements no observer", pkg, o))
}

// Each calls f with every observer until one fails.
func Each[T any](list []T, f func(T) error) error {
	for _, o := range list {
		if err := f(o); err != nil {
			return err
		}
	}
	return nil
}
