package server

import (
	"context"
	"fmt"

	"soniq/internal/control"
)

func (h *Platform) addStock(ctx context.Context, in control.NumberBlockRequest) (string, error) {
	n, err := h.numbers.AddStock(ctx, in.Org, in.Trunk, in.From, in.To)
	if err != nil {
		return "", plain(err)
	}
	return fmt.Sprintf("%d number(s) added", n), nil
}

func (h *Platform) setPort(ctx context.Context, in control.PortRequest) (string, error) {
	p, err := h.numbers.SetPort(ctx, in.Org, in.ID, in.Status, in.Trunk, in.Detail)
	if err != nil {
		return "", plain(err)
	}
	return fmt.Sprintf("port %s is %s", p.ID, p.Status), nil
}
