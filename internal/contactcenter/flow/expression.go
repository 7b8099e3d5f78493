package flow

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/vm"

	"soniq/internal/platform/limit"
)

// Scope holds the values that expressions and templates of a flow can use.
type Scope struct {
	Variables map[string]any `expr:"variables"`
	Caller    Caller         `expr:"caller"`
	Contact   map[string]any `expr:"contact"` // empty if the caller is unknown
	Memory    map[string]any `expr:"memory"`  // calls_total, summary, sentiment_trend
	Time      Moment         `expr:"time"`
	Budget    *Budget        `expr:"-"` // of the call; nil: each evaluation has only its own limits
}

// maxMemory limits the elements of lists and maps that an evaluation makes.
const maxMemory = 100_000

// Caller describes the caller.
type Caller struct {
	Number    string `expr:"number"` // E.164, or anonymous
	Name      string `expr:"name"`
	Called    string `expr:"called"` // the number that was dialled
	Anonymous bool   `expr:"anonymous"`
}

// Moment is the time of the call in the time zone of the flow.
type Moment struct {
	Hour    int    `expr:"hour"`
	Minute  int    `expr:"minute"`
	Weekday string `expr:"weekday"` // mon to sun
	Date    string `expr:"date"`    // 2026-12-25
	Day     int    `expr:"day"`
	Month   int    `expr:"month"`
	Year    int    `expr:"year"`
}

// MomentOf returns a time in the form that expressions use.
func MomentOf(t time.Time) Moment {
	return Moment{Hour: t.Hour(), Minute: t.Minute(), Weekday: strings.ToLower(t.Format("Mon")), Date: t.Format(time.DateOnly),
		Day: t.Day(), Month: int(t.Month()), Year: t.Year()}
}

// Expression is a compiled expression. It has no loops, and every value that it makes is counted (evaluation), so that its memory and its
// run
// time are bounded.
type Expression struct{ program *vm.Program }

// ParseExpression compiles an expression. If truth is true, it rejects an expression that cannot be a boolean.
func ParseExpression(text string, truth bool) (*Expression, error) {
	if len(text) > limit.ExpressionLength.Int() {
		return nil, fmt.Errorf("must have at most %s", limit.ExpressionLength)
	}
	if err := new(restrictions).check(text); err != nil {
		return nil, err
	}
	options := []expr.Option{expr.Env(environment{}), expr.MaxNodes(uint(limit.ExpressionTerms.Default)),
		expr.Patch(guards{}), expr.Optimize(false),
		expr.DisableBuiltin("repeat"), expr.DisableBuiltin("now")}
	if truth {
		options = append(options, expr.AsBool())
	}
	p, err := expr.Compile(text, options...)
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		return nil, errors.New(first)
	}
	return &Expression{p}, nil
}

// Value evaluates the expression.
func (e *Expression) Value(s Scope) (any, error) { return e.value(s, &evaluation{call: s.Budget}) }

// value evaluates the expression, and counts it in x.
func (e *Expression) value(s Scope, x *evaluation) (any, error) {
	machine := vm.VM{MemoryBudget: maxMemory}
	return machine.Run(e.program, environment{s, x})
}

// IsTrue evaluates the expression and reports whether it is true.
func (e *Expression) IsTrue(s Scope) (bool, error) {
	v, err := e.Value(s)
	truth, _ := v.(bool)
	return truth, err
}

// Template is a text that contains {{expressions}}.
type Template struct {
	texts  []string // one more than values
	values []*Expression
}

// ParseTemplate parses a text.
func ParseTemplate(text string) (*Template, error) {
	if len(text) > limit.TemplateLength.Int() {
		return nil, fmt.Errorf("must have at most %s", limit.TemplateLength)
	}
	if n := strings.Count(text, "{{"); n > limit.TemplateValues.Int() {
		return nil, fmt.Errorf("must have at most %s {{…}}", limit.TemplateValues)
	}
	var t Template
	for {
		before, rest, found := strings.Cut(text, "{{")
		t.texts = append(t.texts, before)
		if !found {
			return &t, nil
		}
		inner, after, closed := strings.Cut(rest, "}}")
		if !closed {
			return nil, errors.New("{{ is not closed by }}")
		}
		e, err := ParseExpression(inner, false)
		if err != nil {
			return nil, fmt.Errorf("{{%s}}: %w", inner, err)
		}
		t.values, text = append(t.values, e), after
	}
}

// Fill replaces the expressions with their values. An expression that fails is left out. The result is cut at
// limit.TemplateResult.
func (t *Template) Fill(s Scope) string {
	return t.FillWith(s, func(v any) string { return fmt.Sprint(v) })
}

// FillWith is Fill for a text with a syntax, such as a URL or JSON. form escapes each value for that syntax. All values together have the
// budget of one evaluation.
func (t *Template) FillWith(s Scope, form func(v any) string) string {
	var b strings.Builder
	x, most := &evaluation{call: s.Budget}, limit.TemplateResult.Int()
	for i, text := range t.texts {
		b.WriteString(text)
		if i == len(t.values) {
			break
		}
		v, err := t.values[i].value(s, x)
		if err == nil {
			v, err = x.GuardValue(v) // counted before it becomes a text
		}
		if err == nil && v != nil {
			b.WriteString(form(v))
		}
		if b.Len() > most {
			return b.String()[:most]
		}
	}
	return b.String()
}
