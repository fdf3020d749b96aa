package main

import (
	"context"

	"conformance/guest-go/conformance"

	"thalweg.dev/go/thalweg/wire"
)

// The methods that return their parameter.

func (s *service) EchoBool(_ context.Context, value bool) (bool, error) {
	return value, nil
}

func (s *service) EchoU8(_ context.Context, value uint8) (uint8, error) {
	return value, nil
}

func (s *service) EchoU16(_ context.Context, value uint16) (uint16, error) {
	return value, nil
}

func (s *service) EchoU32(_ context.Context, value uint32) (uint32, error) {
	return value, nil
}

func (s *service) EchoU64(_ context.Context, value uint64) (uint64, error) {
	return value, nil
}

func (s *service) EchoS8(_ context.Context, value int8) (int8, error) {
	return value, nil
}

func (s *service) EchoS16(_ context.Context, value int16) (int16, error) {
	return value, nil
}

func (s *service) EchoS32(_ context.Context, value int32) (int32, error) {
	return value, nil
}

func (s *service) EchoS64(_ context.Context, value int64) (int64, error) {
	return value, nil
}

func (s *service) EchoF32(_ context.Context, value float32) (float32, error) {
	return value, nil
}

func (s *service) EchoF64(_ context.Context, value float64) (float64, error) {
	return value, nil
}

func (s *service) EchoChar(_ context.Context, value rune) (rune, error) {
	return value, nil
}

func (s *service) EchoString(_ context.Context, value string) (string, error) {
	return value, nil
}

func (s *service) EchoBytes(_ context.Context, value []byte) ([]byte, error) {
	return value, nil
}

func (s *service) EchoBools(_ context.Context, value []bool) ([]bool, error) {
	return value, nil
}

func (s *service) EchoNumbers(_ context.Context, value []int64) ([]int64, error) {
	return value, nil
}

func (s *service) EchoFloats(_ context.Context, value []float64) ([]float64, error) {
	return value, nil
}

func (s *service) EchoStrings(_ context.Context, value []string) ([]string, error) {
	return value, nil
}

func (s *service) EchoGrid(_ context.Context, value [][]int32) ([][]int32, error) {
	return value, nil
}

func (s *service) EchoPoints(_ context.Context, value []conformance.Point) ([]conformance.Point, error) {
	return value, nil
}

func (s *service) EchoOption(_ context.Context, value *string) (*string, error) {
	return value, nil
}

func (s *service) EchoOptionTwice(_ context.Context, value **uint32) (**uint32, error) {
	return value, nil
}

func (s *service) EchoResult(_ context.Context, value conformance.Tuple1ResultU64String) (conformance.Tuple1ResultU64String, error) {
	return value, nil
}

func (s *service) EchoResultOk(_ context.Context, value []wire.Result[uint32, struct{}]) ([]wire.Result[uint32, struct{}], error) {
	return value, nil
}

func (s *service) EchoResultError(_ context.Context, value []wire.Result[struct{}, string]) ([]wire.Result[struct{}, string], error) {
	return value, nil
}

func (s *service) EchoResultBare(_ context.Context, value []wire.Result[struct{}, struct{}]) ([]wire.Result[struct{}, struct{}], error) {
	return value, nil
}

func (s *service) EchoTuple(_ context.Context, value conformance.Tuple4U8StringF64OptionChar) (conformance.Tuple4U8StringF64OptionChar, error) {
	return value, nil
}

func (s *service) EchoPoint(_ context.Context, value conformance.Point) (conformance.Point, error) {
	return value, nil
}

func (s *service) EchoSpot(_ context.Context, value conformance.Point) (conformance.Point, error) {
	return value, nil
}

func (s *service) EchoScalars(_ context.Context, value conformance.Scalars) (conformance.Scalars, error) {
	return value, nil
}

func (s *service) EchoNested(_ context.Context, value conformance.Nested) (conformance.Nested, error) {
	return value, nil
}

func (s *service) EchoKeywords(_ context.Context, value conformance.Keywords) (conformance.Keywords, error) {
	return value, nil
}

func (s *service) EchoShape(_ context.Context, value conformance.Shape) (conformance.Shape, error) {
	return value, nil
}

func (s *service) EchoShapes(_ context.Context, value []conformance.Shape) ([]conformance.Shape, error) {
	return value, nil
}

func (s *service) EchoColor(_ context.Context, value conformance.Color) (conformance.Color, error) {
	return value, nil
}

func (s *service) EchoColors(_ context.Context, value []conformance.Color) ([]conformance.Color, error) {
	return value, nil
}

func (s *service) EchoRights(_ context.Context, value conformance.Rights) (conformance.Rights, error) {
	return value, nil
}

func (s *service) EchoDays(_ context.Context, value conformance.Days) (conformance.Days, error) {
	return value, nil
}

func (s *service) EchoWide(_ context.Context, value conformance.Wide) (conformance.Wide, error) {
	return value, nil
}

func (s *service) EchoNames(_ context.Context, value []string) ([]string, error) {
	return value, nil
}

func (s *service) EchoFailure(_ context.Context, value conformance.Failure) (conformance.Failure, error) {
	return value, nil
}

func (s *service) EchoKey(_ context.Context, value [16]uint8) ([16]uint8, error) {
	return value, nil
}

func (s *service) EchoThree(_ context.Context, value [3]int64) ([3]int64, error) {
	return value, nil
}

func (s *service) EchoFixed(_ context.Context, value conformance.Fixed) (conformance.Fixed, error) {
	return value, nil
}

func (s *service) EchoKeys(_ context.Context, value [][2]uint8) ([][2]uint8, error) {
	return value, nil
}
