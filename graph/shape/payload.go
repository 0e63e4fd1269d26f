package shape

import (
	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/member"
)

// MemberPayload is an accepted change of a member.
func MemberPayload(changed *member.Changed, err error) (*model.MemberPayload, error) {
	if err != nil {
		return nil, err
	}
	return &model.MemberPayload{Member: changed.Member, Operation: changed.Operation}, nil
}

// InstancePayload is an accepted change of an instance.
func InstancePayload(started *instance.Started, err error) (*model.InstancePayload, error) {
	if err != nil {
		return nil, err
	}
	return &model.InstancePayload{Instance: started.Instance, Operation: started.Operation}, nil
}
