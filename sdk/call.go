package sdk

import "github.com/weirgate/weir/sdk/wire"

// call runs one operation. nil is "no opinion", which is also the answer to an operation that this sdk does not know.
func (p *Plugin) call(op wire.Op, input []byte) []byte {
	w := &Writer{}
	v := Parse(input)
	switch op {
	case wire.OpDescribe:
		return p.describe()
	case wire.OpPlan:
		p.plan(w, v)
	case wire.OpRespond:
		if p.Respond != nil {
			if a := p.Respond(request(v)); a != nil {
				a.write(w)
			}
		}
	case wire.OpRestate:
		if p.OnRestate != nil {
			if r := p.OnRestate(&Failure{v}); r != nil {
				r.write(w)
			}
		}
	case wire.OpClassify:
		if p.OnClassify != nil {
			if r := p.OnClassify(&Failure{v}); r != nil {
				r.write(w)
			}
		}
	}
	return w.Bytes()
}

func (p *Plugin) plan(w *Writer, v Value) {
	if p.Plan == nil {
		return
	}
	plan, err := p.Plan(planRequest(v))
	switch {
	case err != nil:
		refuse(w, err)
	case plan != nil:
		writePlan(w, plan)
	}
}

// refuse writes {"error": {...}} (ABI-1).
func refuse(w *Writer, err error) {
	e, ok := err.(*Error) //nolint:errorlint // package errors would be the larger part of many guests
	if !ok {
		e = &Error{Code: "internal", Message: err.Error()}
	}
	w.Object(func() {
		w.Key("error").Object(func() {
			w.Key("code").Text(e.Code)
			w.Key("message").Text(e.Message)
		})
	})
}
