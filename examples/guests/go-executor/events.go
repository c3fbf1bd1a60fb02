package main

import "github.com/weirgate/weir/sdk"

// said counts, for each stream, the bytes of text that were passed on.
var said sdk.Streams[int]

// out is reused: the host copies an answer before it calls again.
var out sdk.Writer

// onEvent turns {"id", "text": "all so far"} into a chunk of chat completions with what is new.
func onEvent(e *sdk.Event) sdk.Action {
	if e.Name == "heartbeat" {
		return sdk.Drop
	}
	if message, ok := e.JSON("fault.message").Text(); ok {
		return sdk.EndStream(sdk.Internal, message)
	}
	text, ok := e.JSON("text").Text()
	if !ok {
		return sdk.Pass // [DONE], usage, and what Acme may send one day
	}
	so := said.Of(e.Stream)
	if len(text) <= *so {
		return sdk.Drop
	}
	fresh := text[*so:]
	*so = len(text)
	return sdk.Replace("", chunk(e, fresh))
}

// chunk is a chunk of chat completions with that text.
func chunk(e *sdk.Event, text string) []byte {
	out.Reset()
	out.Object(func() {
		out.Key("id").Raw(e.JSON("id").Raw())
		out.Key("object").Text("chat.completion.chunk")
		out.Key("choices").List(func() {
			out.Object(func() {
				out.Key("index").Int(0)
				out.Key("delta").Object(func() { out.Key("content").Text(text) })
				out.Key("finish_reason").Raw(nil)
			})
		})
	})
	return out.Bytes()
}
