package flow

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strings"
	"sync/atomic"

	"soniq/internal/platform/limit"
)

// Budget is what the expressions of one call, or of one simulated call, may use up together. It is safe for concurrent use.
type Budget struct{ used atomic.Int64 }

// Limits of the values of one evaluation.
const (
	maxValue    = 512 << 10 // bytes of a value, as size counts them
	maxDepth    = 32        // of nested lists and maps
	maxCompared = 1000      // elements of a list whose elements are compared with each other
	elementSize = 16        // bytes that an element of a list or a map counts besides its content
	stepSize    = 4         // bytes that a step of a regular expression counts
)

// evaluation counts what one evaluation uses up. Every value that can be large is counted when it is made or read. So memory and time of an
// evaluation are bounded whatever the expression does.
type evaluation struct {
	used int64
	call *Budget // may be nil
}

// environment is what an expression sees: the scope, and the methods of evaluation that guards puts around its parts. Texts cannot name
// them.
type environment struct {
	Scope
	*evaluation
}

var (
	errValueTooLarge = fmt.Errorf("a value is larger than %d kB or nested more than %d levels", maxValue>>10, maxDepth)
	errUsedUp        = fmt.Errorf("the values of the expression are larger than %s together", limit.ExpressionMemory)
	errCallUsedUp    = fmt.Errorf("the expressions of the flow have used up the %s of the call", limit.FlowMemory)
)

// use counts bytes. It refuses them if the evaluation or the call has used up its budget.
func (e *evaluation) use(n int) error {
	if e.used += int64(n); e.used > limit.ExpressionMemory.Default {
		limit.ExpressionMemory.Refuse()
		return errUsedUp
	}
	if e.call != nil && e.call.used.Add(int64(n)) > limit.FlowMemory.Default {
		limit.FlowMemory.Refuse()
		return errCallUsedUp
	}
	return nil
}

// GuardText counts a string.
func (e *evaluation) GuardText(s string) (string, error) {
	if len(s) > maxValue {
		limit.ExpressionMemory.Refuse()
		return "", errValueTooLarge
	}
	return s, e.use(len(s) + elementSize)
}

// GuardValue counts any value.
func (e *evaluation) GuardValue(v any) (any, error) {
	left := maxValue
	if measure(v, maxDepth, &left); left < 0 {
		limit.ExpressionMemory.Refuse()
		return nil, errValueTooLarge
	}
	return v, e.use(maxValue - left + elementSize)
}

// GuardFew is GuardValue for a list whose elements are compared with each other.
func (e *evaluation) GuardFew(v any) (any, error) {
	if r := reflect.ValueOf(v); (r.Kind() == reflect.Slice || r.Kind() == reflect.Array) && r.Len() > maxCompared {
		limit.ExpressionMemory.Refuse()
		return nil, fmt.Errorf("sort() and uniq() take at most %d elements", maxCompared)
	}
	return e.GuardValue(v)
}

// measure subtracts the size of a value from left, until it is negative. A list that is an element of several lists counts several times.
func measure(v any, depth int, left *int) {
	if *left -= elementSize; depth <= 0 {
		*left = math.MinInt
	}
	switch x := v.(type) {
	case nil, bool, int, float64:
	case string:
		*left -= len(x)
	case []any:
		for i := 0; i < len(x) && *left >= 0; i++ {
			measure(x[i], depth-1, left)
		}
	case map[string]any:
		for name, v := range x {
			if *left -= len(name); *left < 0 {
				return
			}
			measure(v, depth-1, left)
		}
	default:
		measureOther(reflect.ValueOf(v), depth, left)
	}
}

func measureOther(r reflect.Value, depth int, left *int) {
	switch r.Kind() {
	case reflect.String:
		*left -= r.Len()
	case reflect.Slice, reflect.Array:
		for i := 0; i < r.Len() && *left >= 0; i++ {
			measure(r.Index(i).Interface(), depth-1, left)
		}
	case reflect.Map:
		for entry := r.MapRange(); *left >= 0 && entry.Next(); {
			measure(entry.Key().Interface(), depth-1, left)
			measure(entry.Value().Interface(), depth-1, left)
		}
	case reflect.Struct:
		for i := 0; i < r.NumField() && *left >= 0; i++ {
			if f := r.Type().Field(i); f.IsExported() {
				measure(r.Field(i).Interface(), depth-1, left)
			}
		}
	}
}

// GuardSubject counts the text that a constant regular expression of some steps is applied to.
func (e *evaluation) GuardSubject(v any, steps int) (any, error) {
	text, ok := v.(string)
	if !ok { // nil, or a type that the operator refuses itself
		return e.GuardValue(v)
	}
	if _, err := e.GuardText(text); err != nil {
		return nil, err
	}
	return v, e.use(stepSize * steps * (len(text) + 1))
}

// GuardMatches applies a regular expression that is not constant.
func (e *evaluation) GuardMatches(v, expression any) (bool, error) {
	if v == nil || expression == nil {
		return false, nil
	}
	text, ok := v.(string)
	pattern, also := expression.(string)
	if !ok || !also {
		return false, errors.New("matches needs two texts")
	}
	steps, err := regexpSteps(pattern)
	if err != nil {
		return false, err
	}
	if _, err := e.GuardSubject(text, steps); err != nil {
		return false, err
	}
	compiled, err := regexp.Compile(pattern)
	if err != nil {
		return false, err
	}
	return compiled.MatchString(text), nil
}

// GuardReplace is the built-in replace, which checks the size of the result before it is made.
func (e *evaluation) GuardReplace(s, old, by string, n int) (string, error) {
	for _, part := range []string{s, old, by} {
		if _, err := e.GuardText(part); err != nil {
			return "", err
		}
	}
	found := strings.Count(s, old)
	if n >= 0 {
		found = min(found, n)
	}
	if len(s)+found*(len(by)-len(old)) > maxValue {
		limit.ExpressionMemory.Refuse()
		return "", errValueTooLarge
	}
	return e.GuardText(strings.Replace(s, old, by, n))
}

// GuardJoin is the built-in join, which checks the size of the result before it is made.
func (e *evaluation) GuardJoin(list any, glue string) (string, error) {
	if _, err := e.GuardValue(list); err != nil {
		return "", err
	}
	r := reflect.ValueOf(list)
	if r.Kind() != reflect.Slice {
		return "", fmt.Errorf("join needs a list, not %T", list)
	}
	size, texts := len(glue)*r.Len(), make([]string, r.Len())
	for i := range texts {
		text, ok := r.Index(i).Interface().(string)
		if !ok {
			return "", errors.New("join needs a list of texts")
		}
		size, texts[i] = size+len(text), text
	}
	if size > maxValue {
		limit.ExpressionMemory.Refuse()
		return "", errValueTooLarge
	}
	return e.GuardText(strings.Join(texts, glue))
}
