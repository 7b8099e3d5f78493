package server

import (
	"context"
	"fmt"

	"soniq/internal/control"
)

// outbound stops or starts outbound calls of every organisation; emergency calls always go out.
func (p *Platform) outbound(ctx context.Context, in control.OutboundRequest) (string, error) {
	if in.Do != "status" {
		if err := p.trunks.SetOutboundKillSwitch(ctx, in.Do == "stop"); err != nil {
			return "", err
		}
		p.log.Warn("outbound calls switched by the operator", "do", in.Do)
	}
	ended := 0
	if in.Do == "stop" && in.Calls {
		ended = p.gate.StopAll()
	}
	halted, err := p.trunks.OutboundKillSwitch(ctx)
	if err != nil {
		return "", err
	}
	if halted {
		return fmt.Sprintf("outbound calls are stopped, but emergency calls; %d call(s) were ended", ended), nil
	}
	return "outbound calls go out", nil
}
