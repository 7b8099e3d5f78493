package server

import (
	"context"
	"fmt"

	"soniq/internal/control"
)

func (p *Platform) addStock(ctx context.Context, in control.NumberBlockRequest) (string, error) {
	n, err := p.numbers.AddStock(ctx, in.Org, in.Trunk, in.From, in.To)
	if err != nil {
		return "", plain(err)
	}
	return fmt.Sprintf("%d number(s) added", n), nil
}

func (p *Platform) setPort(ctx context.Context, in control.PortRequest) (string, error) {
	port, err := p.numbers.SetPort(ctx, in.Org, in.ID, in.Status, in.Trunk, in.Detail)
	if err != nil {
		return "", plain(err)
	}
	return fmt.Sprintf("port %s is %s", port.ID, port.Status), nil
}
